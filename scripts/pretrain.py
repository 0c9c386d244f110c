"""`vanilla-transformer pretrain`, from a checkout."""

from hf_vanilla_transformer.commands.pretrain import main


if __name__ == "__main__":
    main()
