"""`initialize`: the handshake. It is not shown in the document; the shipping server's is followed.

The `initialized` notification has no effect and needs no handler. The client's capabilities have no
effect either: without `experimentalApi` a client is offered everything too. A warning is logged for
`optOutNotificationMethods`, since the client will be sent notifications that it does not want.
"""

import logging
import sys

from harness.protocol.wire.initialize import InitializeParams, InitializeResult
from reference_server import VERSION
from reference_server.brief import brief
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_request

_log = logging.getLogger(__name__)


@handles("initialize")
async def initialize(call: Call, params: InitializeParams) -> None:
    """Answer the handshake, once per connection."""
    if call.connection.initialized:
        raise invalid_request("Already initialized")
    call.connection.initialized = True
    capabilities = params.capabilities
    if capabilities and (unwanted := capabilities.opt_out_notification_methods):
        _log.warning(
            "optOutNotificationMethods has no effect: %s will be sent all the same",
            brief(", ".join(map(repr, unwanted))),
        )
    caller = params.client_info
    call.connection.client_name = caller.name if caller else None
    by = ""
    if caller and caller.name:
        by = f" ({brief(caller.name)}; {brief(caller.version or 'no version')})"
    call.answer(InitializeResult(user_agent=f"agent/{VERSION} {sys.platform}{by}"))
