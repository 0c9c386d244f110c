"""`vanilla-transformer train-classifier`, from a checkout."""

from hf_vanilla_transformer.commands.train_classifier import main


if __name__ == "__main__":
    main()
