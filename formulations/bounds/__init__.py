"""Bounds that hold for every tree, found before a solver is called."""
