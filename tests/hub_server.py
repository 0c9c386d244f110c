"""A small Hugging Face Hub on loopback: what `huggingface_hub` asks of one, in memory, with faults on demand.

A model's repository is `USER/NAME`, a Space's `spaces/USER/NAME`. Repositories have branches, and commits that keep
every file; `.safetensors` and the like go through LFS. Reading a public repository needs no token, everything else
needs `TOKEN`, which is `USER`'s.
"""

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml


USER = "kim"
TOKEN = "hf_" + "k" * 34
LFS_NAMES = re.compile(r"\.(safetensors|bin|pt|pth|model)$")
REPO_NAME = re.compile(r"[\w.-]+")


@dataclass
class Repository:
    """Commits by their ids; a commit is its title, its parent and its files' contents by path."""

    private: bool
    sdk: str | None = None
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict] = field(default_factory=dict)

    def commit(self, branch: str, title: str, files: dict[str, bytes], lfs: frozenset[str]) -> str:
        parent = self.branches.get(branch)
        identity = [branch, title, parent, {path: hashlib.sha1(data).hexdigest() for path, data in files.items()}]
        sha = hashlib.sha1(json.dumps([*identity, len(self.commits)]).encode()).hexdigest()
        self.commits[sha] = {"title": title, "parent": parent, "files": files, "lfs": lfs}
        self.branches[branch] = sha
        return sha

    def find(self, revision: str) -> str | None:
        """The commit that a branch or an id names."""
        return self.branches.get(revision) or (revision if revision in self.commits else None)


@dataclass
class Fault:
    """What happens to requests that match: a status, or the connection breaks off.

    Attributes:
        method: Of the request.
        path: Pattern that is found in the path.
        status: What is answered; None to read half of the body and hang up.
    """

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

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def storage_url(self) -> str:
        """Where large objects are: on another host, as the Hub has it, which gets no token."""
        return f"http://localhost:{self.server_port}/lfs"

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
        repository.commit("main", "initial commit", {".gitattributes": b"", **(files or {})}, frozenset())
        return repository

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        """The contents of a repository's files by path."""
        repository = self.repositories[repo_id]
        return repository.commits[repository.find(revision)]["files"]

    def titles(self, repo_id: str, branch: str = "main") -> list[str]:
        """The titles of a branch's commits, the newest first."""
        repository, titles = self.repositories[repo_id], []
        sha = repository.branches.get(branch)
        while sha is not None:
            titles.append(repository.commits[sha]["title"])
            sha = repository.commits[sha]["parent"]
        return titles


class Stop(Exception):
    """An answer that ends the request: status, error code and message."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    ROUTES = (
        ("GET", r"/api/whoami-v2", "whoami"),
        ("POST", r"/api/repos/create", "create_repository"),
        ("POST", r"/api/validate-yaml", "validate_card"),
        ("POST", r"/api/(models/)?(?P<repo>(spaces/)?[^/]+/[^/]+)/preupload/(?P<revision>[^/]+)", "preupload"),
        ("POST", r"/api/(models/)?(?P<repo>(spaces/)?[^/]+/[^/]+)/commit/(?P<revision>[^/]+)", "commit"),
        ("POST", r"/api/(models/)?(?P<repo>(spaces/)?[^/]+/[^/]+)/branch/(?P<revision>[^/]+)", "create_branch"),
        ("GET", r"/api/(models/)?(?P<repo>(spaces/)?[^/]+/[^/]+)/tree/(?P<revision>[^/]+)(/(?P<path>.+))?", "tree"),
        ("GET", r"/api/(models/)?(?P<repo>(spaces/)?[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?", "information"),
        ("POST", r"/(?P<repo>(spaces/)?[^/]+/[^/]+)\.git/info/lfs/objects/batch", "lfs_batch"),
        ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", "lfs_put"),
        ("POST", r"/lfs/verify", "lfs_verify"),
        ("GET", r"/lfs/(?P<oid>[0-9a-f]{64})", "lfs_get"),
        ("GET", r"/(?P<repo>(spaces/)?[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
    )

    def log_message(self, *_):
        """Quiet."""

    def answer_request(self):
        url = urlsplit(self.path)
        self.query = parse_qs(url.query)
        self.body = b""
        # HEAD is GET without the body.
        self.method = "GET" if self.command == "HEAD" else self.command
        with self.server.lock:
            self.server.requests.append((self.command, url.path))
            fault = next(
                (f for f in self.server.faults if f.method == self.command and re.search(f.path, url.path)), None
            )
        length = int(self.headers.get("Content-Length", 0))
        if fault is not None and fault.status is None:
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        self.body = self.rfile.read(length)
        if fault is not None:
            self.send(fault.status, b'{"error": "on purpose"}', {})
            return
        for method, pattern, name in self.ROUTES:
            if method == self.method and (match := re.fullmatch(pattern, url.path)):
                arguments = {k: unquote(v) for k, v in match.groupdict().items() if v is not None}
                try:
                    with self.server.lock:
                        self.authenticate(write=method != "GET" and name != "validate_card")
                        getattr(self, name)(**arguments)
                except Stop as stop:
                    status, code, message, *headers = stop.args
                    self.send_json(
                        {"error": message},
                        status,
                        {"X-Error-Code": code, "X-Error-Message": message, **dict(*headers)},
                    )
                return
        self.server.unknown.append((self.command, url.path))
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
        headers = {k: v for k, v in (headers or {}).items() if v is not None}
        self.send(status, json.dumps(content).encode(), {"Content-Type": "application/json", **headers})

    # --- Who may do what ---

    def authenticate(self, write: bool):
        given = self.headers.get("Authorization")
        self.user = USER if given == f"Bearer {TOKEN}" else None
        if self.path.startswith("/lfs/") and self.command != "POST":
            # The address is all that a client needs, and a token would be given away.
            if given is not None:
                raise Stop(400, None, "A token was sent to the storage")
            return
        if given is not None and self.user is None:
            raise Stop(401, None, "Invalid username or password.")
        if write and self.user is None:
            raise Stop(401, None, "Invalid username or password.")

    def repository(self, repo: str, write: bool = False) -> Repository:
        found = self.server.repositories.get(repo)
        if found is None or (found.private and self.user != repo.split("/")[-2]):
            raise Stop(404 if self.user else 401, "RepoNotFound", "Repository not found")
        if write and self.user != repo.split("/")[-2]:
            raise Stop(403, None, f"You don't have the rights to write to {repo}")
        return found

    def revision(self, found: Repository, revision: str) -> str:
        if (sha := found.find(revision)) is None:
            raise Stop(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha

    # --- Repositories ---

    def whoami(self):
        if self.user is None:
            raise Stop(401, None, "Invalid username or password.")
        self.send_json({"type": "user", "name": self.user, "orgs": [], "auth": {"type": "access_token"}})

    def create_repository(self):
        asked = json.loads(self.body)
        owner, name = asked.get("organization") or self.user, asked["name"]
        if not REPO_NAME.fullmatch(name):
            raise Stop(400, None, f"Invalid repository name {name}")
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
        files = found.commits[sha]["files"]
        config = json.loads(files.get("config.json", b"{}"))
        self.send_json(
            {
                "_id": repo,
                "id": repo,
                "modelId": repo,
                "sha": sha,
                "private": found.private,
                **({} if found.sdk is None else {"sdk": found.sdk}),
                "config": {key: config[key] for key in ("model_type", "architectures", "auto_map") if key in config},
                "siblings": [{"rfilename": path} for path in files],
                "tags": [],
                "downloads": 0,
            }
        )

    def validate_card(self):
        content = json.loads(self.body)["content"]
        match = re.match(r"---\n(.*?\n)---", content, re.DOTALL)
        errors = []
        try:
            data = yaml.safe_load(match[1]) if match else {}
            if not isinstance(data.get("license", ""), str):
                errors.append({"message": '"license" must be a string'})
            for model in data.get("model-index", []):
                for result in model["results"]:
                    if not {"type"} <= set(result["task"]) or not {"type", "name"} <= set(result["dataset"]):
                        errors.append({"message": '"model-index" lacks a type or a name'})
                    if any("value" not in metric for metric in result["metrics"]):
                        errors.append({"message": '"model-index" lacks a value'})
        except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            errors.append({"message": str(error)})
        self.send_json({"errors": errors, "warnings": []}, 400 if errors else 200)

    # --- Uploads ---

    def preupload(self, repo: str, revision: str):
        found = self.repository(repo, write=True)
        commit = found.commits[self.revision(found, revision)]
        files = []
        for file in json.loads(self.body)["files"]:
            lfs = bool(LFS_NAMES.search(file["path"])) or file["size"] > 10 * 2**20
            there = commit["files"].get(file["path"])
            oid = None
            if there is not None:
                oid = hashlib.sha256(there).hexdigest() if lfs else git_hash(there)
            mode = "lfs" if lfs else "regular"
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.send_json({"files": files})

    def lfs_batch(self, repo: str):
        self.repository(repo, write=True)
        objects = []
        for asked in json.loads(self.body)["objects"]:
            if asked["oid"] not in self.server.objects:
                put, verify = f"{self.server.storage_url}/{asked['oid']}", f"{self.server.url}/lfs/verify"
                asked["actions"] = {"upload": {"href": put}, "verify": {"href": verify}}
            objects.append(asked)
        self.send_json({"transfer": "basic", "objects": objects})

    def lfs_put(self, oid: str):
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Stop(400, None, "Not the object that was announced")
        self.server.objects[oid] = self.body
        self.send(200, b"", {})

    def lfs_verify(self):
        asked = json.loads(self.body)
        if len(self.server.objects.get(asked["oid"], b"")) != asked["size"]:
            raise Stop(404, None, "No such object")
        self.send_json({})

    def commit(self, repo: str, revision: str):
        found = self.repository(repo, write=True)
        if revision not in found.branches:
            raise Stop(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        before = found.commits[found.branches[revision]]
        files, lfs, title = dict(before["files"]), set(before["lfs"]), ""
        for line in self.body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                title = value["summary"]
            elif item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
                lfs.discard(value["path"])
            elif item["key"] == "lfsFile":
                if value["oid"] not in self.server.objects:
                    raise Stop(400, None, f"LFS object {value['oid']} was never uploaded")
                files[value["path"]] = self.server.objects[value["oid"]]
                lfs.add(value["path"])
            elif item["key"] == "deletedFile":
                if files.pop(value["path"], None) is None:
                    raise Stop(404, "EntryNotFound", "A file with this name doesn't exist")
            else:
                raise Stop(400, None, f"Unknown operation {item['key']}")
        sha = found.commit(revision, title, files, frozenset(lfs))
        self.send_json({"success": True, "commitOid": sha, "commitUrl": f"{self.server.url}/{repo}/commit/{sha}"})

    # --- Downloads ---

    def tree(self, repo: str, revision: str, path: str = ""):
        found = self.repository(repo)
        commit = found.commits[self.revision(found, revision)]
        entries, folders = [], set()
        for name, data in commit["files"].items():
            if path and not name.startswith(f"{path}/"):
                continue
            rest = name[len(path) + 1 :] if path else name
            if "/" in rest and "true" not in [value.lower() for value in self.query.get("recursive", [])]:
                folders.add(name[: len(name) - len(rest)] + rest.split("/")[0])
                continue
            entry = {"type": "file", "path": name, "size": len(data), "oid": git_hash(data)}
            if name in commit["lfs"]:
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            entries.append(entry)
        if path and not entries and not folders:
            raise Stop(404, "EntryNotFound", f"{path} does not exist on {revision}")
        self.send_json([*({"type": "directory", "path": f, "oid": git_hash(f.encode())} for f in folders), *entries])

    def resolve(self, repo: str, revision: str, path: str):
        found = self.repository(repo)
        sha = self.revision(found, revision)
        commit = found.commits[sha]
        if path not in commit["files"]:
            raise Stop(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": sha})
        data = commit["files"][path]
        if path not in commit["lfs"]:
            self.send(200, data, {"X-Repo-Commit": sha, "ETag": f'"{git_hash(data)}"'})
            return
        oid = hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": sha, "X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data))}
        self.send(302, b"", {**headers, "Location": f"{self.server.storage_url}/{oid}"})

    def lfs_get(self, oid: str):
        if oid not in self.server.objects:
            raise Stop(404, None, "No such object")
        self.send(200, self.server.objects[oid], {"ETag": f'"{oid}"'})


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
