"""The five models, from reusable constraint blocks: Pyomo and numpy, nothing of solvers or files.

Import it as ``octsvm.formulations``.
"""

if __name__ == "formulations":
    raise ImportError(
        "This folder is the package octsvm.formulations; write `from octsvm import formulations` or "
        "`import octsvm.formulations`. A bare `import formulations` would load every module a second time."
    )
