"""Run the command line as ``python -m whosthere``."""

from whosthere.cli.main import main

main()
