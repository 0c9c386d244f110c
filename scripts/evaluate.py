"""`vanilla-transformer evaluate`, from a checkout."""

from hf_vanilla_transformer.commands.evaluate import main


if __name__ == "__main__":
    main()
