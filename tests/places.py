"""Where the tests find things, whichever folder they stand in themselves."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FIXTURES = TESTS / "fixtures"
FAKE_SOLVERS = TESTS / "fake_solvers"
SHARED = ROOT.parent / "shared"  # the data sets, where they are beside the checkout
