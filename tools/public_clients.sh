#!/bin/sh
# Two public Python clients of the real server make their main calls to `agent app-server`, whose
# model is played from a scenario. Their sessions are recorded, and the clients judged by their duties.
# They are no dependencies of this project: they get an environment of their own.
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
for client in app_server_client python_sdk; do
    mkdir -p "$play/$client/home" "$play/$client/work"
    cat > "$play/$client/agent" <<END
#!/bin/sh
# A client comes back to its thread: with --listen each connection would have a home of its own.
[ "\$*" = "app-server --listen stdio://" ] && set -- app-server
exec "$here/.venv/bin/harness" record -o "$play/$client/sessions/" -- \
    "$here/.venv/bin/agent" "\$@" --scenario "$here/fixtures/clients/conversation.scenario.yaml"
END
    chmod +x "$play/$client/agent"
    AGENT_HOME=$play/$client/home timeout 60 "$clients/bin/python" \
        "$here/fixtures/clients/$client.py" "$play/$client/agent" "$play/$client/work"
done
"$here/.venv/bin/harness" check --side client "$play"/*/sessions/*.jsonl
