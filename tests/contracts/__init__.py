"""What holds for a whole kind of files."""
