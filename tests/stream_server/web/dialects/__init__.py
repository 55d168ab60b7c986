"""The dialects: other streaming APIs' words, held to what their clients parse."""
