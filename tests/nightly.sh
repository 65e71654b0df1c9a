#!/bin/sh
# Everything that takes hours, by one command, with a page of what came of it: tests/nightly.sh --help
exec python3 "$(dirname "$0")/nightly/nightly.py" "$@"
