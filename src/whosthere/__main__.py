"""Run the command line as ``whosthere`` or ``python -m whosthere``."""

import sys

try:
    from whosthere.cli.main import main
except KeyboardInterrupt:  # before it could say so itself
    sys.exit(130)

if __name__ == "__main__":
    main()
