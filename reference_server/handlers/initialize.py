"""`initialize`: the handshake. It is not shown in the document; the shipping server's is followed.

Here lives nothing else; the `initialized` notification asks for nothing and needs no handler.
"""

import sys

from harness.wire.initialize import InitializeParams, InitializeResult
from reference_server import VERSION
from reference_server.brief import brief
from reference_server.handlers.registry import Call, handles
from reference_server.refusal import invalid_request


@handles("initialize")
async def initialize(call: Call, params: InitializeParams) -> None:
    """Greet the client, once per connection."""
    if call.connection.initialized:
        raise invalid_request("Already initialized")
    call.connection.initialized = True
    caller = params.client_info
    by = f" ({brief(caller.name)}; {brief(caller.version or 'no version')})" if caller else ""
    call.answer(InitializeResult(user_agent=f"agent/{VERSION} {sys.platform}{by}"))
