"""Guards for the tool calls of agent frameworks, each by the framework's published protocol.

No framework is imported before its adapter is created. The tests run each adapter against a stand-in for the framework
that follows its protocol, because the frameworks themselves are not installed there.
"""
