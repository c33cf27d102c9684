"""Stands before a server that knows nothing of gzip, and speaks it with callers.

    gzip_proxy.py HOST:PORT

Prints its own port, then a line for each request: whether it came compressed, and whether the answer went so.
"""

import gzip
import http.client
import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        coding = self.headers.get("Content-Encoding")
        if coding:
            assert coding == "gzip", coding
            body = gzip.decompress(body)
        kept = {name: value for name, value in self.headers.items() if name.lower() in ("content-type", "soapaction")}
        server = http.client.HTTPConnection(sys.argv[1], timeout=300)
        server.request("POST", self.path, body, kept)
        answer = server.getresponse()
        said = answer.read()
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        if takes:
            said = gzip.compress(said)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type"))
        if takes:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
        print("request", coding or "plain", "answer", "gzip" if takes else "plain", flush=True)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
