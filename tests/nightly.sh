#!/bin/sh
# Runs all tests that take hours, and writes a page of their results: tests/nightly.sh --help
exec python3 "$(dirname "$0")/nightly/nightly.py" "$@"
