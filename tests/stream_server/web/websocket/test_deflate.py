"""The answer to offers of compression, judged by the client of another implementation."""

import itertools

import pytest
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.headers import build_extension, parse_extension

from stream_server.web.websocket.deflate import ANSWER, accepts_deflate

BITS = (None, 9, 15)


def test_every_offer_that_is_accepted_gets_an_answer_that_its_client_accepts() -> None:
    """An offer that limits the server's window is declined. The next one of the same request may be accepted."""
    (_, answer), *_ = parse_extension(ANSWER)
    accepted = set()
    for takeover, server_bits, client_bits in itertools.product((False, True), BITS, (*BITS, True)):
        factory = ClientPerMessageDeflateFactory(takeover, takeover, server_bits, client_bits)
        offer = build_extension([(factory.name, factory.get_request_params())])
        if accepts_deflate(offer):
            factory.process_response_params(answer, [])  # raises NegotiationError
            accepted.add((server_bits, client_bits))
        else:
            assert accepts_deflate(f"{offer}, permessage-deflate")
    assert accepted == {(None, bits) for bits in (*BITS, True)}


@pytest.mark.parametrize(
    "offers",
    [
        "", "deflate-frame", "permessage-deflate; unknown", "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=16", "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; client_max_window_bits; client_max_window_bits", "permessage-deflate; ",
    ],
)  # fmt: skip
def test_an_offer_with_invalid_parameters_is_declined(offers: str) -> None:
    assert not accepts_deflate(offers)
