"""What is installed and works here, which solver is fastest, and how large a model would be."""
