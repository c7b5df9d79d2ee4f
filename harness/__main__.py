import sys

try:
    from harness.cli import main
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: run `make setup`, then .venv/bin/python -m harness")

main()
