#!/bin/sh
# Makes .venv and installs into it the pins of requirements.txt and the project itself (editable).
# `make` calls it before every command; when nothing has changed it says nothing and takes a moment.
#
# usage: sh tools/setup.sh [PYTHON]        PYTHON is python3 unless another one is named
#
#   .venv/.installed    what was installed, and for which folder: written last
#   .venv/.installing   there while an install runs: found at the start, the last one was interrupted
set -eu

cd "$(dirname "$0")/.."
python=${1:-python3}
venv=.venv
wanted=$(pwd && cksum requirements.txt pyproject.toml)

works() { # the interpreter still exists, and is still the one that the environment was made with
    "$venv/bin/python" -c "import pip" >/dev/null 2>&1
}

if [ "$wanted" = "$(cat $venv/.installed 2>/dev/null)" ] && works; then
    exit 0
fi

if [ -L $venv ]; then # it belongs to another folder, and making it anew here would take it away there
    echo "$venv is a link to another folder's: remove the link, or run make in the folder that it leads to." >&2
    exit 1
fi

moved() { # an environment has its own path in its scripts
    [ -e $venv/.installed ] && [ "$(pwd)" != "$(head -n 1 $venv/.installed)" ]
}

if [ -e $venv/.installing ] || moved || ! works; then
    if ! command -v "$python" >/dev/null 2>&1; then
        echo "There is no $python: install Python 3.11 or later, on Debian and Ubuntu with" \
            "\`apt-get install python3 python3-venv\`, elsewhere from python.org." >&2
        exit 1
    fi
    "$python" tools/check_python.py
    echo "Making $venv with $("$python" --version 2>&1), a few minutes the first time ..."
    "$python" -m venv --clear $venv
else
    echo "Bringing $venv up to date ..."
fi

pip() {
    "$venv/bin/python" -m pip --quiet --quiet --disable-pip-version-check --no-input "$@"
}

touch $venv/.installing
rm -f $venv/.installed
pip install --requirement requirements.txt
pip install --no-build-isolation --no-deps --editable .

# No question about news in every student's first window.
mkdir -p $venv/etc/jupyter/labconfig
echo '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}' \
    >$venv/etc/jupyter/labconfig/page_config.json

printf '%s\n' "$wanted" >$venv/.installed
rm $venv/.installing
echo "$venv is ready."
