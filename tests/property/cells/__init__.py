"""A model of `docs/scaling.md`: several logs, one order.

``cells``  the cells, whose clocks differ, and nodes that merge what they hear up to a watermark
"""
