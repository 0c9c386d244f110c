"""`vanilla-transformer figures`, from a checkout."""

from hf_vanilla_transformer.commands.figures import main


if __name__ == "__main__":
    main()
