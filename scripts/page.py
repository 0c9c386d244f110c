"""`vanilla-transformer page`, from a checkout."""

from hf_vanilla_transformer.commands.page import main


if __name__ == "__main__":
    main()
