"""A small Hugging Face Hub on loopback: what `huggingface_hub` asks of one, in memory.

A repository is `USER/NAME`. Repositories have branches, and commits that keep every file; `.safetensors` and the like
go through LFS. Reading a public repository needs no token, everything else needs `TOKEN`, which is `USER`'s.
"""

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from huggingface_hub import ModelCard


USER = "kim"
TOKEN = "hf_" + "k" * 34
LFS_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".model")
REPO = r"(?P<repo>[^/]+/[^/]+)"
API = rf"/api/(models/)?{REPO}"
REVISION = "(?P<revision>[^/]+)"


@dataclass
class Repository:
    """Commits by their ids: the branch, the title, and the files' contents by path; branches by their last commit."""

    name: str
    private: bool = False
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, tuple[str, str, dict[str, bytes]]] = field(default_factory=dict)

    def commit(self, branch: str, title: str, files: dict[str, bytes]) -> str:
        sha = hashlib.sha1(b"%d" % len(self.commits)).hexdigest()
        self.commits[sha], self.branches[branch] = (branch, title, files), sha
        return sha

    def files(self, revision: str) -> tuple[str, dict[str, bytes]]:
        """The id of the commit that a branch or an id names, and its files."""
        sha = self.branches.get(revision, revision)
        if sha not in self.commits:
            raise Stop(404, "RevisionNotFound")
        return sha, self.commits[sha][2]


class HubServer(ThreadingHTTPServer):
    """`requests` are (method, path) of all, `unknown` those without an answer; `refuses` commits with status 500."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}
        self.refuses = False
        self.requests: list[tuple[str, str]] = []
        self.unknown: list[tuple[str, str]] = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"
        # Large objects are on another host, as the Hub has it, which gets no token.
        self.storage_url = f"http://localhost:{self.server_port}/lfs"

    def create(self, repo_id: str, files: dict[str, bytes] | None = None, **kind) -> None:
        """Make a repository, with `.gitattributes` as the Hub's have it."""
        repository = self.repositories[repo_id] = Repository(repo_id, **kind)
        repository.commit("main", "initial commit", {".gitattributes": b"", **(files or {})})

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        """The contents of a repository's files by path."""
        return self.repositories[repo_id].files(revision)[1]

    def titles(self, repo_id: str) -> list[str]:
        """The titles of the main branch's commits, the newest first."""
        commits = self.repositories[repo_id].commits.values()
        return [title for branch, title, _ in reversed(commits) if branch == "main"]


class Stop(Exception):
    """An error that ends the request: its status, and the Hub's code for it or what is wrong."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    ROUTES = (
        ("GET", r"/api/whoami-v2", "whoami"),
        ("POST", r"/api/repos/create", "create_repository"),
        ("POST", r"/api/validate-yaml", "validate_card"),
        ("POST", rf"{API}/preupload/{REVISION}", "preupload"),
        ("POST", rf"{API}/commit/{REVISION}", "commit"),
        ("POST", rf"{API}/branch/{REVISION}", "create_branch"),
        ("GET", rf"{API}/tree/{REVISION}(/(?P<path>.+))?", "tree"),
        ("GET", rf"{API}(/revision/{REVISION})?", "information"),
        ("POST", rf"/{REPO}\.git/info/lfs/objects/batch", "lfs_batch"),
        ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", "lfs_put"),
        ("POST", r"/lfs/verify", "lfs_verify"),
        ("GET", r"/lfs/(?P<oid>[0-9a-f]{64})", "lfs_get"),
        ("GET", rf"/{REPO}/resolve/{REVISION}/(?P<path>.+)", "resolve"),
    )

    def log_message(self, *_):
        """Quiet."""

    def answer_request(self):
        path = urlsplit(self.path).path
        self.server.requests.append((self.command, path))
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            with self.server.lock:
                self.answer("GET" if self.command == "HEAD" else self.command, path)  # HEAD is GET without the body
        except Stop as stop:
            status, error = stop.args
            self.send({"error": error}, status, {"X-Error-Code": error})

    do_GET = do_HEAD = do_POST = do_PUT = answer_request

    def answer(self, method: str, path: str):
        for route_method, pattern, name in self.ROUTES:
            if method == route_method and (match := re.fullmatch(pattern, path)):
                arguments = {key: unquote(value) for key, value in match.groupdict().items() if value is not None}
                write = method != "GET" and name != "validate_card"
                self.authenticate(write)
                if "repo" in arguments:
                    arguments["repo"] = self.repository(arguments["repo"])
                getattr(self, name)(**arguments)
                return
        self.server.unknown.append((self.command, path))
        raise Stop(404, "no such page")

    def send(self, content: Any, status: int = 200, headers: dict[str, str] | None = None):
        """Send bytes, or JSON."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def authenticate(self, write: bool):
        self.is_user = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if write and not self.is_user and not self.path.startswith("/lfs/"):
            raise Stop(401, "Invalid username or password.")

    def repository(self, name: str) -> Repository:
        found = self.server.repositories.get(name)
        if found is None or (found.private and not self.is_user):
            raise Stop(404, "RepoNotFound")
        return found

    def whoami(self):
        self.send({"type": "user", "name": USER, "orgs": [], "auth": {"type": "access_token"}})

    def create_repository(self):
        asked = json.loads(self.body)
        name = f"{asked.get('organization') or USER}/{asked['name']}"
        exists = name in self.server.repositories
        if not exists:
            private = asked.get("visibility") == "private" or asked.get("private", False)
            self.server.create(name, private=private)
        self.send({"url": f"{self.server.url}/{name}", "name": name}, 409 if exists else 200)

    def create_branch(self, repo: Repository, revision: str):
        if revision in repo.branches:
            raise Stop(409, "Reference already exists")
        repo.branches[revision] = repo.branches["main"]
        self.send({}, 201)

    def information(self, repo: Repository, revision: str = "main"):
        sha, files = repo.files(revision)
        config = json.loads(files.get("config.json", b"{}"))
        self.send({"id": repo.name, "sha": sha, "private": repo.private, "config": config})

    def validate_card(self):
        ModelCard(json.loads(self.body)["content"])  # checks the results as the Hub does
        self.send({"errors": [], "warnings": []})

    def preupload(self, repo: Repository, revision: str):
        _, there = repo.files(revision)
        files = []
        for file in json.loads(self.body)["files"]:
            path = file["path"]
            mode, digest = ("lfs", sha256) if path.endswith(LFS_SUFFIXES) else ("regular", git_hash)
            oid = digest(there[path]) if path in there else None
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.send({"files": files})

    def lfs_batch(self, repo: Repository):
        objects = json.loads(self.body)["objects"]
        for asked in objects:
            if asked["oid"] not in self.server.objects:
                put, verify = f"{self.server.storage_url}/{asked['oid']}", f"{self.server.url}/lfs/verify"
                asked["actions"] = {"upload": {"href": put}, "verify": {"href": verify}}
        self.send({"transfer": "basic", "objects": objects})

    def lfs_put(self, oid: str):
        assert sha256(self.body) == oid
        self.server.objects[oid] = self.body
        self.send(b"")

    def lfs_verify(self):
        asked = json.loads(self.body)
        assert len(self.server.objects[asked["oid"]]) == asked["size"]
        self.send({})

    def commit(self, repo: Repository, revision: str):
        if self.server.refuses:
            raise Stop(500, "on purpose")
        files = dict(repo.files(revision)[1])
        header, *items = map(json.loads, self.body.splitlines())
        for item in items:
            value = item["value"]
            path = value["path"]
            if item["key"] == "deletedFile":
                del files[path]
            elif path.endswith(LFS_SUFFIXES):
                files[path] = self.server.objects[value["oid"]]
            else:
                files[path] = base64.b64decode(value["content"])
        sha = repo.commit(revision, header["value"]["summary"], files)
        self.send({"success": True, "commitOid": sha, "commitUrl": f"{self.server.url}/{repo.name}/commit/{sha}"})

    def tree(self, repo: Repository, revision: str, path: str = ""):
        entries = [
            {"type": "file", "path": name, "size": len(data), "oid": git_hash(data)}
            for name, data in repo.files(revision)[1].items()
            if name.startswith(path)
        ]
        if not entries:
            raise Stop(404, "EntryNotFound")
        self.send(entries)

    def resolve(self, repo: Repository, revision: str, path: str):
        sha, files = repo.files(revision)
        if path not in files:
            raise Stop(404, "EntryNotFound")
        data = files[path]
        if not path.endswith(LFS_SUFFIXES):
            self.send(data, headers={"X-Repo-Commit": sha, "ETag": f'"{git_hash(data)}"'})
            return
        oid = sha256(data)
        headers = {"X-Repo-Commit": sha, "X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data))}
        self.send(b"", 302, {**headers, "Location": f"{self.server.storage_url}/{oid}"})

    def lfs_get(self, oid: str):
        self.send(self.server.objects[oid], headers={"ETag": f'"{oid}"'})


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
