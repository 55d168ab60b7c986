"""The files of ``deploy/`` match the program: they are parsed, compared with it, and run as far as a machine allows."""
