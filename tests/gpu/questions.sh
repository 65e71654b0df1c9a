#!/bin/sh
# Answers the open questions of the recorder's design on this machine: questions.sh PROGRAM PYTHON FOLDER
exec "$2" "$(dirname "$0")/questions.py" "$1" "$3"
