import sys

from conftest import ROOT


# Where the scripts find each other.
sys.path.insert(0, str(ROOT / "scripts" / "experiments"))
