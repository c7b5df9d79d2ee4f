"""Token By Token's harness: it records runs of real inference engines and renders them as pages.

Data flows one way: experiment -> cells -> engine + load -> recording -> views -> queries -> page.
"""

__version__ = "0.1.0"
