#!/usr/bin/env bash
# Installs Locust in a folder, as `bin/locust` there. Usage: build.sh FOLDER
set -euo pipefail
[ -x "$1/bin/pip" ] || python3 -m venv "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check locust==2.47.0
