"""Starts a kernel for the distributed process proxy of Enterprise Gateway, as a launcher on another machine does.

It sends the connection information of the kernel to the gateway, encrypted, and then carries out the signals that the
gateway requests. It ends with its kernel.
"""

import argparse
import base64
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time

from Cryptodome.Cipher import AES, PKCS1_v1_5
from Cryptodome.PublicKey import RSA
from Cryptodome.Util.Padding import pad
from jupyter_client.connect import write_connection_file
from jupyter_core.paths import jupyter_runtime_dir


def parse_arguments():
    parser = argparse.ArgumentParser()
    for name in ("kernel-id", "response-address", "public-key"):
        parser.add_argument("--RemoteProcessProxy." + name, dest=name.replace("-", "_"), required=True)
    parser.add_argument("--test-pid", type=int, required=True)
    return parser.parse_args()


def encrypt(information, public_key):
    """Encrypts with a new AES key, which only the owner of the RSA key can read."""
    key = secrets.token_bytes(16)
    text = pad(json.dumps(information).encode(), 16)
    rsa = RSA.import_key(base64.b64decode(public_key))
    message = {
        "version": 1,
        "key": base64.b64encode(PKCS1_v1_5.new(rsa).encrypt(key)).decode(),
        "conn_info": base64.b64encode(AES.new(key, AES.MODE_ECB).encrypt(text)).decode(),
    }
    return base64.b64encode(json.dumps(message).encode())


def serve(listener, kernel):
    """Carries out requests of the gateway, one per connection."""
    while True:
        connection, _ = listener.accept()
        with connection:
            data = b""
            while part := connection.recv(1024):
                data += part
        request = json.loads(data or b"{}")
        if request.get("shutdown"):
            kernel.terminate()
        elif request.get("signum"):
            kernel.send_signal(request["signum"])


def end_with_test(pid, kernel):
    """Ends the kernel after the test, also if the test was killed and the gateway with it."""
    while os.path.exists(f"/proc/{pid}") or sys.platform != "linux":
        time.sleep(1)
    kernel.kill()


def main():
    arguments = parse_arguments()
    path = os.path.join(jupyter_runtime_dir(), f"distributed-{arguments.kernel_id}-{os.getpid()}.json")
    key = secrets.token_hex(16).encode()
    _, information = write_connection_file(path, ip="127.0.0.1", key=key)
    # The kernel ends when this process does.
    environment = {**os.environ, "JPY_PARENT_PID": str(os.getpid())}
    kernel = subprocess.Popen([sys.executable, "-m", "ipykernel_launcher", "-f", path], env=environment)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, kernel), daemon=True).start()
    threading.Thread(target=end_with_test, args=(arguments.test_pid, kernel), daemon=True).start()

    information["key"] = key.decode()
    information["kernel_id"] = arguments.kernel_id
    information["comm_port"] = listener.getsockname()[1]
    information["pid"] = os.getpid()
    host, port = arguments.response_address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as response:
        response.sendall(encrypt(information, arguments.public_key))
    status = kernel.wait()
    os.unlink(path)
    # A negative status names the signal that killed the kernel.
    sys.exit(status if status >= 0 else 128 - status)


main()
