"""A small Hugging Face Hub on loopback: what `huggingface_hub` asks of one, in memory, with faults on demand.

A model's repository is `USER/NAME`, a Space's `spaces/USER/NAME`. Repositories have branches, and commits that keep
every file; `.safetensors` and the like go through LFS. Reading a public repository needs no token, everything else
needs `TOKEN`, which is `USER`'s. What no client may do is asserted: the connection breaks off.
"""

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from huggingface_hub import ModelCard


USER = "kim"
TOKEN = "hf_" + "k" * 34
LFS_NAMES = re.compile(r"\.(safetensors|bin|pt|pth|model)$")
REPO = r"(?P<repo>(spaces/)?[^/]+/[^/]+)"
API = rf"/api/(models/)?{REPO}"


@dataclass
class Repository:
    """Commits by their ids: the branch, the title, and the files' contents by path; branches by their last commit."""

    private: bool
    sdk: str | None = None
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, tuple[str, str, dict[str, bytes]]] = field(default_factory=dict)

    def commit(self, branch: str, title: str, files: dict[str, bytes]) -> str:
        sha = hashlib.sha1(b"%d" % len(self.commits)).hexdigest()
        self.commits[sha], self.branches[branch] = (branch, title, files), sha
        return sha


class Fault(NamedTuple):
    """What happens to requests of a method whose path matches a pattern: a status, or None to hang up half-way."""

    method: str
    path: str
    status: int | None = None


class HubServer(ThreadingHTTPServer):
    """Serves until the `with` block ends; `requests` are (method, path) of all, `unknown` those without an answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.unknown: list[tuple[str, str]] = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"
        # Large objects are on another host, as the Hub has it, which gets no token.
        self.storage_url = f"http://localhost:{self.server_port}/lfs"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Clients that hang up are part of the tests."""

    def create(self, repo_id: str, private: bool = False, files: dict[str, bytes] | None = None) -> Repository:
        """Make a repository, with `.gitattributes` as the Hub's have it."""
        repository = self.repositories[repo_id] = Repository(private)
        repository.commit("main", "initial commit", {".gitattributes": b"", **(files or {})})
        return repository

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        """The contents of a repository's files by path."""
        repository = self.repositories[repo_id]
        return repository.commits[repository.branches[revision]][2]

    def titles(self, repo_id: str) -> list[str]:
        """The titles of the main branch's commits, the newest first."""
        commits = self.repositories[repo_id].commits.values()
        return [title for branch, title, _ in reversed(commits) if branch == "main"]


class Stop(Exception):
    """An answer that ends the request: status, error code, message, and further headers."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    ROUTES = (
        ("GET", r"/api/whoami-v2", "whoami"),
        ("POST", r"/api/repos/create", "create_repository"),
        ("POST", r"/api/validate-yaml", "validate_card"),
        ("POST", rf"{API}/preupload/(?P<revision>[^/]+)", "preupload"),
        ("POST", rf"{API}/commit/(?P<revision>[^/]+)", "commit"),
        ("POST", rf"{API}/branch/(?P<revision>[^/]+)", "create_branch"),
        ("GET", rf"{API}/tree/(?P<revision>[^/]+)(/(?P<path>.+))?", "tree"),
        ("GET", rf"{API}(/revision/(?P<revision>[^/]+))?", "information"),
        ("POST", rf"/{REPO}\.git/info/lfs/objects/batch", "lfs_batch"),
        ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", "lfs_put"),
        ("POST", r"/lfs/verify", "lfs_verify"),
        ("GET", r"/lfs/(?P<oid>[0-9a-f]{64})", "lfs_get"),
        ("GET", rf"/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
    )

    def log_message(self, *_):
        """Quiet."""

    def answer_request(self):
        path = urlsplit(self.path).path
        with self.server.lock:
            self.server.requests.append((self.command, path))
            faults = [fault for fault in self.server.faults if fault.method == self.command]
            fault = next((fault for fault in faults if re.search(fault.path, path)), None)
        length = int(self.headers.get("Content-Length", 0))
        if fault is not None and fault.status is None:
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        self.body = self.rfile.read(length)
        if fault is not None:
            self.send_json({"error": "on purpose"}, fault.status)
            return
        method = "GET" if self.command == "HEAD" else self.command  # HEAD is GET without the body
        for route_method, pattern, name in self.ROUTES:
            if method == route_method and (match := re.fullmatch(pattern, path)):
                arguments = {key: unquote(value) for key, value in match.groupdict().items() if value is not None}
                try:
                    with self.server.lock:
                        self.authenticate(write=method != "GET" and name != "validate_card")
                        getattr(self, name)(**arguments)
                except Stop as stop:
                    status, code, message, *headers = stop.args
                    errors = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
                    self.send_json({"error": message}, status, {**errors, **dict(*headers)})
                return
        self.server.unknown.append((self.command, path))
        self.send_json({"error": "no such page"}, 404)

    do_GET = do_HEAD = do_POST = do_PUT = answer_request

    def send(self, status: int, body: bytes, headers: dict[str, str]):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, content, status: int = 200, headers: dict[str, str] | None = None):
        self.send(status, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    # --- Who may do what ---

    def authenticate(self, write: bool):
        given = self.headers.get("Authorization")
        self.user = USER if given == f"Bearer {TOKEN}" else None
        if self.path.startswith("/lfs/") and self.command != "POST":
            assert given is None  # the address is all that a client needs, and a token would be given away
        elif self.user is None and (write or given is not None):
            raise Stop(401, None, "Invalid username or password.")

    def repository(self, repo: str, write: bool = False) -> Repository:
        found, is_owner = self.server.repositories.get(repo), self.user == repo.split("/")[-2]
        if found is None or (found.private and not is_owner):
            raise Stop(404 if self.user else 401, "RepoNotFound", "Repository not found")
        if write and not is_owner:
            raise Stop(403, None, f"You don't have the rights to write to {repo}")
        return found

    def revision(self, found: Repository, revision: str) -> str:
        """The id of the commit that a branch or an id names."""
        sha = found.branches.get(revision, revision)
        if sha not in found.commits:
            raise Stop(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha

    # --- Repositories ---

    def whoami(self):
        self.send_json({"type": "user", "name": self.user, "orgs": [], "auth": {"type": "access_token"}})

    def create_repository(self):
        asked = json.loads(self.body)
        owner, name = asked.get("organization") or self.user, asked["name"]
        if owner != self.user:
            raise Stop(403, None, f'You don\'t have the rights to create a model under the namespace "{owner}"')
        repo = f"{'spaces/' if asked.get('type') == 'space' else ''}{owner}/{name}"
        url = f"{self.server.url}/{repo}"
        if repo in self.server.repositories:
            self.send_json({"error": "You already created this model repo", "url": url}, 409)
            return
        created = self.server.create(repo, asked.get("visibility") == "private" or asked.get("private", False))
        created.sdk = asked.get("sdk")
        self.send_json({"url": url, "name": repo})

    def create_branch(self, repo: str, revision: str):
        found = self.repository(repo, write=True)
        if revision in found.branches:
            raise Stop(409, None, "Reference already exists")
        found.branches[revision] = found.branches["main"]
        self.send_json({}, 201)

    def information(self, repo: str, revision: str = "main"):
        found = self.repository(repo)
        sha = self.revision(found, revision)
        _, _, files = found.commits[sha]
        config = json.loads(files.get("config.json", b"{}"))
        answer = {
            **{"id": repo, "sha": sha, "private": found.private, "sdk": found.sdk},
            "config": {key: config[key] for key in ("model_type", "architectures", "auto_map") if key in config},
            "siblings": [{"rfilename": path} for path in files],
        }
        self.send_json(answer)

    def validate_card(self):
        ModelCard(json.loads(self.body)["content"])  # checks the results as the Hub does
        self.send_json({"errors": [], "warnings": []})

    # --- Uploads ---

    def preupload(self, repo: str, revision: str):
        found = self.repository(repo, write=True)
        _, _, there = found.commits[self.revision(found, revision)]
        files = []
        for file in json.loads(self.body)["files"]:
            path = file["path"]
            mode, digest = ("lfs", sha256) if LFS_NAMES.search(path) else ("regular", git_hash)
            oid = digest(there[path]) if path in there else None
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.send_json({"files": files})

    def lfs_batch(self, repo: str):
        self.repository(repo, write=True)
        objects = json.loads(self.body)["objects"]
        for asked in objects:
            if asked["oid"] not in self.server.objects:
                put, verify = f"{self.server.storage_url}/{asked['oid']}", f"{self.server.url}/lfs/verify"
                asked["actions"] = {"upload": {"href": put}, "verify": {"href": verify}}
        self.send_json({"transfer": "basic", "objects": objects})

    def lfs_put(self, oid: str):
        assert sha256(self.body) == oid
        self.server.objects[oid] = self.body
        self.send(200, b"", {})

    def lfs_verify(self):
        asked = json.loads(self.body)
        assert len(self.server.objects[asked["oid"]]) == asked["size"]
        self.send_json({})

    def commit(self, repo: str, revision: str):
        found = self.repository(repo, write=True)
        files = dict(self.server.files(repo, revision))
        header, *items = map(json.loads, self.body.splitlines())
        for item in items:
            kind, value = item["key"], item["value"]
            if kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
            else:
                assert kind == "deletedFile"
                del files[value["path"]]
        sha = found.commit(revision, header["value"]["summary"], files)
        self.send_json({"success": True, "commitOid": sha, "commitUrl": f"{self.server.url}/{repo}/commit/{sha}"})

    # --- Downloads ---

    def tree(self, repo: str, revision: str, path: str = ""):
        found = self.repository(repo)
        _, _, files = found.commits[self.revision(found, revision)]
        entries = []
        for name, data in files.items():
            if name.startswith(path):
                entry = {"type": "file", "path": name, "size": len(data), "oid": git_hash(data)}
                lfs = {"oid": sha256(data), "size": len(data), "pointerSize": 134}
                entries.append(entry | ({"lfs": lfs} if LFS_NAMES.search(name) else {}))
        if not entries:
            raise Stop(404, "EntryNotFound", f"{path} does not exist on {revision}")
        self.send_json(entries)

    def resolve(self, repo: str, revision: str, path: str):
        found = self.repository(repo)
        sha = self.revision(found, revision)
        _, _, files = found.commits[sha]
        if path not in files:
            raise Stop(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": sha})
        data = files[path]
        if not LFS_NAMES.search(path):
            self.send(200, data, {"X-Repo-Commit": sha, "ETag": f'"{git_hash(data)}"'})
            return
        oid = sha256(data)
        headers = {"X-Repo-Commit": sha, "X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data))}
        self.send(302, b"", {**headers, "Location": f"{self.server.storage_url}/{oid}"})

    def lfs_get(self, oid: str):
        self.send(200, self.server.objects[oid], {"ETag": f'"{oid}"'})


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
