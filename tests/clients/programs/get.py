"""Send GET to the given URL with requests or urllib. Print the status or the failure."""

import json
import sys
import urllib.error
import urllib.request

url, library = sys.argv[1:]
try:
    if library == "requests":
        import requests

        status = requests.get(url, timeout=10).status_code
    else:
        status = urllib.request.urlopen(url, timeout=10).status
except OSError as error:  # both libraries' failures are of this kind
    print(json.dumps({"failed": str(error)}))
else:
    print(json.dumps({"status": status}))
