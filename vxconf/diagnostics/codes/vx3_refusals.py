"""The codes VX3xx: refusals against the file system or the workspace."""

from __future__ import annotations

from vxconf.diagnostics.codes.code import Code, Stage, sandbox, task

REFUSALS = (
    Code(
        code="VX301",
        slug="grant-leaves-project",
        title="a link leads a grant to where its text does not",
        means="A link in the project would decide what is granted. The entry is spelled inside the project and its "
        "path, links followed, lies outside; or a link leads a read grant into a credential store, a secret of the "
        "system or a repository's data. Grant the real path if that is meant.",
        wrong=sandbox('allow.write = ["linked-out/"]'),
        right=sandbox('allow.write = ["out/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX302",
        slug="grant-holds-wall",
        title="a write grant holds a wall",
        means="`.git`, nested projects and the cache are walls: no grant from above reaches them. Grant a directory "
        "beside the wall, or name the wall itself.",
        wrong=sandbox('allow.write = ["../"]'),
        right=sandbox('allow.write = ["dist/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX303",
        slug="file-for-directory",
        title="a file is where a grant needs a directory",
        means="A grant that ends in `/` or `/**` is a directory, and a file, or a link to one, stands there.",
        wrong=sandbox('allow.write = ["package.json/"]'),
        right=sandbox('allow.write = ["dist/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX305",
        slug="write-to-everything",
        title="a write grant of the root, of home or of what is above it",
        means="Such a grant would open every project, key and program of the user.",
        wrong=sandbox('allow.write = ["~"]'),
        right=sandbox('allow.write = ["~/.cache/tool/"]'),
    ),
    Code(
        code="VX306",
        slug="write-to-own-runtime",
        title="a write grant holds the running interpreter or this program",
        means="A task that can rewrite the program that guards it is not guarded.",
        wrong=sandbox('allow.write = [".venv/"]'),
        right=sandbox('allow.write = ["dist/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX307",
        slug="project-under-dev",
        title="the project is under /dev",
        means="A task sees a fresh `/dev`; a project there could not be shown in it. Move the project.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX308",
        slug="unusable-path",
        title="a path cannot be used",
        means="The path holds NUL, is too long for the kernel, or its links go round in a circle.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX309",
        slug="missing-outside",
        title="a write grant outside the project names nothing",
        means="Outside the project a grant without a trailing `/` has to name something that exists, and outside the "
        "workspace no pattern can be granted. Spell a directory that the task makes with a trailing `/`.",
        wrong=sandbox('allow.write = ["~/.cache/tool"]'),
        right=sandbox('allow.write = ["~/.cache/tool/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX310",
        slug="workspace-too-wide",
        title="the workspace root is the file system's, home or above home",
        means="A sandbox hides the workspace around the task's project. A workspace that holds home would hide the "
        "whole account. Add a `.vx/workspace.toml` where the workspace really begins.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX311",
        slug="two-files",
        title="a project has both a vx.toml and a vx.json",
        means="Neither is preferred, so neither is read. Remove one.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX312",
        slug="unknown-reference",
        title="a task or project of another file does not exist",
        means="In `project#task` the project is its directory from the workspace root, or its name. Of `^task` some "
        "project of the workspace has the task. A task with a reference that names nothing is not run.",
        wrong=task('dependsOn = ["libs/mony#build"]'),
        right=task('dependsOn = ["libs/money#build"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX313",
        slug="pattern-too-wide",
        title="a pattern stands for too much",
        means="The pattern's braces stand for more than 1,000 grants, or more than 250,000 directory entries would "
        "have to be looked at before the task starts. Start the pattern in a deeper directory, or grant the directory.",
        wrong=sandbox('allow.read = ["{1..2000}.txt"]'),
        right=sandbox('allow.read = ["data/"]'),
        stage=Stage.HOST,
    ),
    Code(
        code="VX314",
        slug="no-longer-as-resolved",
        title="the file system is no longer what the config was resolved for",
        means="A link stands where none did, the project is gone, or the config comes from another workspace, so the "
        "grants would mean other places. Resolve the config again.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX315",
        slug="malformed-resolved-config",
        title="a resolved config is malformed",
        means="The JSON is not what `vxconf resolve` prints: a key is missing, unknown or of the wrong type.",
        stage=Stage.HOST,
    ),
    Code(
        code="VX316",
        slug="keyed-file-unread",
        title="a cache key holds a file the task cannot read",
        means="An entry of `cache.inputs.workspaceFiles` takes a file outside the project that no grant reaches. The "
        "task would run without the file, and its result would be kept under a key that includes it. Grant the file, "
        "take it out of the key, or list it in `ignore.read`.",
        stage=Stage.HOST,
    ),
)
