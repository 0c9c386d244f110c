import pytest

from exports.models import save
from hf_vanilla_transformer.exports import export


@pytest.fixture
def refuse_export(tmp_path):
    """Export a folder or a model that must be refused; nothing may be left."""

    def refuse_export(model, message, format="ctranslate2", error=ValueError):
        folder = model if isinstance(model, str) else save(model, tmp_path / "model")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(error, match=message):
            export(folder, output_dir=str(tmp_path / "new" / "export"), format=format)
        assert sorted(tmp_path.rglob("*")) == before

    return refuse_export
