"""Other streaming APIs' words for what this server does, so that their clients can be pointed at it.

The one decision: **a dialect is a rendering**. A request is translated into the parameters of ``/v1/stream``, the hub
serves it as it serves every other, and a framing says in the other API's words what happened.

``words``         what a status says where reposts repeat the text, and a name for its place: common to all
``admission``     how often somebody may connect
``v1``            the streams of v1.1; ``v1_parameters`` what is asked for, ``oauth`` where the token stands
``v1_status``     a status as v1.1 has it, ``v1_user`` its author; ``v1_framing`` messages as bytes
``v2``            the streams of v2; ``v2_rules`` the rules that a user has saved, ``v2_answers`` what v2 says of them
``v2_status``     a status as a Tweet; ``v2_framing`` messages as bytes
``v2_fields``     which members a client asks for; ``v2_query`` how a query is read, ``v2_problem`` refusals
"""
