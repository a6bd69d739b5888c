"""From a model to a checked result: plan, compile, cutting-plane loop, certificate, outcome."""
