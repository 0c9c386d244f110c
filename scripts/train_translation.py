"""`vanilla-transformer train-translation`, from a checkout."""

from hf_vanilla_transformer.commands.train_translation import main


if __name__ == "__main__":
    main()
