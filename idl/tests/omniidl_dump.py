"""omniidl back-end: the identities and constants of a contract, one a line."""

from omniidl import idlast


def walk(declarations):
    for declaration in declarations:
        if isinstance(declaration, idlast.Typedef):
            walk(declaration.declarators())
        elif isinstance(declaration, idlast.Const):
            value = declaration.value()
            if isinstance(value, (int, bool)):
                print("const", "::".join(declaration.scopedName()), int(value))
        elif not isinstance(declaration, (idlast.Module, idlast.Operation, idlast.Attribute, idlast.Forward)):
            if isinstance(declaration, idlast.DeclRepoId) and hasattr(declaration, "scopedName"):
                print("id", "::".join(declaration.scopedName()), declaration.repoId())
        for inner in ("definitions", "contents"):
            if hasattr(declaration, inner):
                walk(getattr(declaration, inner)())
                break
        if isinstance(declaration, (idlast.Struct, idlast.Exception)):
            walk([m.memberType().decl() for m in declaration.members() if m.constrType()])
        if isinstance(declaration, idlast.Union):
            if declaration.constrType():
                walk([declaration.switchType().decl()])
            walk([c.caseType().decl() for c in declaration.cases() if c.constrType()])


def run(tree, args):
    walk(tree.declarations())
