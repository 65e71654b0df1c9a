#!/bin/sh
# What the recorder's design leaves open, asked of this machine: questions.sh PROGRAM PYTHON FOLDER
exec "$2" "$(dirname "$0")/questions.py" "$1" "$3"
