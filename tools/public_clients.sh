#!/bin/sh
# Two public Python clients of the real server make their main calls to `agent app-server`, whose
# model is played from a scenario. They are no dependencies of this project: they get an environment
# of their own.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$(command -v python3.11 || command -v python3)}
clients=$here/.real/clients
[ -x "$clients/bin/python" ] || "$python" -m venv "$clients"
"$clients/bin/python" -m pip install --quiet --disable-pip-version-check \
    codex-app-server-client==0.1.0 codex-python-sdk==0.2.1

play=$here/.harness/public_clients
rm -rf "$play"
mkdir -p "$play"
cat > "$play/agent" <<END
#!/bin/sh
exec "$here/.venv/bin/agent" "\$@" --scenario "$here/fixtures/clients/conversation.scenario.yaml"
END
chmod +x "$play/agent"

for client in app_server_client python_sdk; do
    mkdir -p "$play/$client/home" "$play/$client/work"
    AGENT_HOME=$play/$client/home timeout 60 "$clients/bin/python" \
        "$here/fixtures/clients/$client.py" "$play/agent" "$play/$client/work"
done
