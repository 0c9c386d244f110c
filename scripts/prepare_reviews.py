"""`vanilla-transformer prepare-reviews`, from a checkout."""

from hf_vanilla_transformer.commands.prepare_reviews import main


if __name__ == "__main__":
    main()
