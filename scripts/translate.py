"""`vanilla-transformer translate`, from a checkout."""

from hf_vanilla_transformer.commands.translate import main


if __name__ == "__main__":
    main()
