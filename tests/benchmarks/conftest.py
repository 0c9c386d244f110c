import sys

from shared import ROOT


# Scripts import their siblings by bare name.
sys.path.insert(0, str(ROOT / "scripts" / "benchmarks"))
