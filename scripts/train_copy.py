"""`vanilla-transformer train-copy`, from a checkout."""

from hf_vanilla_transformer.commands.train_copy import main


if __name__ == "__main__":
    main()
