"""Whether a service shows the certificate that it names, and answers over TLS as it should. Status 0 if it does.

It knows nothing of Weir but its API:  tls.py PORT KEY FINGERPRINT
"""

import hashlib
import http.client
import json
import socket
import ssl
import sys

port, key, fingerprint = int(sys.argv[1]), sys.argv[2], sys.argv[3]
shown = ssl.get_server_certificate(("127.0.0.1", port))
found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest().upper()
assert found == fingerprint.replace(":", ""), "the certificate is the one whose fingerprint was printed"
# From here on that certificate alone is trusted, for the name that is said.
context = ssl.create_default_context(cadata=shown)


class Named(http.client.HTTPSConnection):
    """A connection to this machine, to somebody of a name."""

    def connect(self):
        stream = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        self.sock = context.wrap_socket(stream, server_hostname=self.host)


def ask(name, method="GET", path="/api/status", headers=None, body=None):
    connection = Named(name, port, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return answer.status, json.loads(said)


for name in ("localhost", "127.0.0.1", socket.gethostname()):
    assert ask(name)[0] == 200, name
try:
    ask("elsewhere.example")
    sys.exit("the certificate is taken for another name")
except ssl.SSLCertVerificationError:
    pass

order = json.dumps({"name": "anna", "client": "over TLS"})
mine = f"https://localhost:{port}"
for origin, shown, status in (
    (mine, f"Bearer {key}", 200),
    (mine, "Bearer 0", 401),
    ("https://elsewhere.example", f"Bearer {key}", 403),
    (mine.replace("https", "http"), f"Bearer {key}", 403),
):
    headers = {"Origin": origin, "Authorization": shown, "Content-Type": "application/json"}
    found, said = ask("localhost", "POST", "/api/command", headers, order)
    assert found == status, f"{origin}: {found} {said}"

# Who does not encrypt learns nothing.
with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
    plain.sendall(b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try:
        assert b"HTTP" not in plain.recv(1024), "nothing is said in the clear"
    except ConnectionResetError:
        pass
