"""What is installed here, by the names that are given."""

import importlib.metadata
import json
import sys

for name in sys.argv[1:]:
    print(json.dumps({name: importlib.metadata.version(name)}))
