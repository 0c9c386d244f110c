"""`vanilla-transformer import-sentencepiece`, from a checkout."""

from hf_vanilla_transformer.commands.import_sentencepiece import main


if __name__ == "__main__":
    main()
