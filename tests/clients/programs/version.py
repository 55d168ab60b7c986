"""Print the installed versions of the named packages."""

import importlib.metadata
import json
import sys

for name in sys.argv[1:]:
    print(json.dumps({name: importlib.metadata.version(name)}))
