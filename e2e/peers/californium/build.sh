#!/usr/bin/env bash
# Builds Californium's peers in a folder, with the class path in its file `classpath`. Usage: build.sh FOLDER
set -euo pipefail
mkdir -p "$1"
cp -r "$(dirname "$0")/." "$1/"
cd "$1"
mvn -q -B compile dependency:build-classpath -Dmdep.outputFile=classpath
