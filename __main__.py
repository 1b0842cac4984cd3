"""``python -m composcope``: runs the command line if its script is not on the path."""

import sys

from .experiments.cli import main

if __name__ == "__main__":
    sys.exit(main())
