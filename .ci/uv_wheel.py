"""The pinned uv, which installs the packages. It is taken out of its wheel.

Debian's python3 has no pip, and uv needs none. To use another version, change VERSION and the hashes, which the index
lists.
"""

from pinned_wheel import Pinned, Wheel

VERSION = "0.13.8"
"""Pinned version of uv."""

PROGRAM = f"uv-{VERSION}.data/scripts/uv"
"""Path of the program inside the wheel."""

# The wheel for aarch64 contains a static program for both glibc and musl.
UV = Pinned(
    "uv",
    "uv",
    VERSION,
    "pip installs the packages, which takes longer",
    {
        name: Wheel(f"py3-none-{tag}", digest, PROGRAM)
        for name, tag, digest in (
            (
                "linux-x86_64-glibc",
                "manylinux_2_17_x86_64.manylinux2014_x86_64",
                "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
            ),
            (
                "linux-x86_64-musl",
                "musllinux_1_1_x86_64",
                "29451c60f5e8b07403e0a175d5229efc36b0289b34143ff4aaa499a5dd52553a",
            ),
            (
                "linux-aarch64",
                "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
                "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
            ),
            (
                "darwin-arm64",
                "macosx_11_0_arm64",
                "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
            ),
            (
                "darwin-x86_64",
                "macosx_10_12_x86_64",
                "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
            ),
        )
    },
)
