#!/bin/sh
# Opens JupyterLab at the first notebook, and prints its address. `make lab` calls it, after the set-up.
#
# usage: sh tools/lab.sh [JupyterLab's own options]        with PORT=8899 in the environment: there or not at all
set -eu

cd "$(dirname "$0")/.."
first=notebooks/00-start-here.ipynb

has_display() {
    case $(uname -s) in
    Darwin) [ -z "${SSH_CONNECTION:-}" ] ;;
    *) [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] ;;
    esac
}

# --LabApp.default_url puts the notebook into the printed address too.
set -- --ServerApp.root_dir="$(pwd)" --LabApp.default_url="/lab/tree/$first" --log-level=WARN "$@"
if [ -n "${PORT:-}" ]; then set -- --ServerApp.port="$PORT" --ServerApp.port_retries=0 "$@"; fi
if [ "$(id -u)" = 0 ]; then set -- --allow-root "$@"; fi
if ! has_display; then set -- --no-browser "$@"; fi

PATH=$(pwd)/.venv/bin:$PATH # so that `!python` in a cell and a terminal in the browser find the same Python
export PATH
exec .venv/bin/python -m jupyterlab "$@"
