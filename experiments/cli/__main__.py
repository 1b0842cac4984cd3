"""``python -m composcope.experiments.cli`` runs the command ``composcope``."""

import sys

from .root import main

if __name__ == "__main__":
    sys.exit(main())
