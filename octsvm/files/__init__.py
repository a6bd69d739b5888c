"""Models written for other programs, and their solutions read back."""
